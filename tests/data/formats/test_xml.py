"""PAGE-XML and ALTO: groups, tables, labels, encodings, and refused files."""

import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.pages.labels import LABELS
from tests.support.pages import alto, page_xml
from tests.support.text import begins

TASK = tasks.get("reading-order")


def read(tmp_path, content, name="a.xml"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(formats.read(str(path), TASK))


def labels(example):
    return [LABELS[int(k) - 1] if k else None for k in example.inputs[:, 4]]


def page_of(regions, order=""):
    """Return PAGE-XML without a prefix, with these elements."""
    text = page_xml(order, boxes={}, prefix="")
    return text.replace("  </Page>", f"{regions}</Page>")


def region(id, kind="TextRegion", inside="", **attributes):
    given = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<{kind} id="{id}"{given}><Coords points="1,2 3,4"/>{inside}</{kind}>'


def test_index_is_the_order_and_groups_may_be_nested(tmp_path):
    order = (
        '<ReadingOrder><OrderedGroup id="g">'
        '<RegionRefIndexed index="10" regionRef="a"/>'
        '<OrderedGroupIndexed id="h" index="2"><RegionRefIndexed index="1" regionRef="b"/>'
        '<RegionRefIndexed index="0" regionRef="c"/></OrderedGroupIndexed>'
        '<UnorderedGroupIndexed id="u" index="3"><RegionRef regionRef="d"/></UnorderedGroupIndexed>'
        "</OrderedGroup></ReadingOrder>"
    )
    (example,) = read(tmp_path, page_of("".join(map(region, "abcd")), order))
    assert example.outputs.tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize(
    "order",
    [
        '<ReadingOrder><UnorderedGroup id="u"><RegionRef regionRef="a"/><RegionRef regionRef="b"/>'
        "</UnorderedGroup></ReadingOrder>",
        '<ReadingOrder><OrderedGroup id="o"><RegionRefIndexed index="0" regionRef="b"/>'
        "</OrderedGroup></ReadingOrder>",
        "<ReadingOrder/>",
    ],
    ids=["unordered", "of some regions", "empty"],
)
def test_partial_orders_are_no_answers_and_are_replaced(tmp_path, order):
    (example,) = read(tmp_path, page_of(region("a") + region("b"), order))
    assert example.outputs is None
    target = tmp_path / "b.xml"
    formats.write(str(target), [example.replace(outputs=[1, 0])], TASK)
    assert target.read_text().count("<ReadingOrder") == 1
    (copy,) = formats.read(str(target), TASK)
    assert copy.outputs.tolist() == [1, 0]


def test_table_with_regions_is_one_box_and_separators_are_none(tmp_path):
    order = (
        '<ReadingOrder><OrderedGroup id="g"><RegionRefIndexed index="1" regionRef="a"/>'
        '<OrderedGroupIndexed id="t1" regionRef="t" index="0"><RegionRefIndexed index="0" '
        'regionRef="c"/></OrderedGroupIndexed></OrderedGroup></ReadingOrder>'
    )
    regions = region("a") + region("s", "SeparatorRegion") + region("t", "TableRegion", region("c"))
    (example,) = read(tmp_path, page_of(regions, order))
    assert labels(example) == [None, "table"] and example.outputs.tolist() == [1, 0]


def test_types_of_regions_become_labels(tmp_path):
    names = ["paragraph", "heading", "marginalia", "drop-capital", "page-number", "credit"]
    regions = "".join(region(f"r{k}", type=name) for k, name in enumerate(names))
    regions += region("i", "ImageRegion") + region("m", "MathsRegion") + region("x", "MusicRegion")
    (example,) = read(tmp_path, page_of(regions))
    assert labels(example) == [
        "text", "section_header", "marginal", "drop_capital", "page_header", None,
        "picture", "formula", None,
    ]  # fmt: skip


def test_classes_of_other_programs_are_in_custom(tmp_path):
    names = ["MarginTextZone:note#2", "heading", "RunningTitleZone", "MainZone:column#1", "credit"]
    regions = "".join(
        region(f"r{k}", custom=f"readingOrder {{index:{k};}} structure {{score:0.9; type:{name};}}")
        for k, name in enumerate(names)
    )
    regions += region("t", type="footnote", custom="structure {type:caption;}")
    regions += region("i", "ImageRegion", custom="structure {type:caption;}")
    regions += region("n", custom="readingOrder {index:5;} textStyle {type:heading;}")
    (example,) = read(tmp_path, page_of(regions))
    assert labels(example) == [
        "marginal", "section_header", "page_header", "text", None, "footnote", "picture", None,
    ]  # fmt: skip


def test_old_schemas_have_an_element_for_each_point(tmp_path):
    regions = (
        '<TextRegion id="a"><Coords><Point x="5" y="8"/><Point x="2" y="9"/></Coords></TextRegion>'
    )
    (example,) = read(tmp_path, page_of(regions))
    assert example.inputs.tolist() == [[2, 8, 5, 9, 0]]


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "utf-8-sig"])
def test_encoding_of_the_file_stays(tmp_path, encoding):
    declared = "UTF-8" if encoding == "utf-8-sig" else encoding
    content = page_xml().replace('"UTF-8"', f'"{declared}"').encode(encoding)
    (example,) = read(tmp_path, content)
    target = tmp_path / "b.xml"
    formats.write(str(target), [example.replace(outputs=[2, 1, 0])], TASK)
    written = target.read_bytes().decode(encoding)
    start, end = written.index("    <pc:ReadingOrder>"), written.index("</pc:ReadingOrder>")
    rest = written[:start] + written[end + len("</pc:ReadingOrder>\n") :]
    assert rest.encode(encoding) == content


def test_a_region_without_corners_has_the_box_of_its_lines(tmp_path):
    lines = "".join(f'<TextLine><Coords points="{p}"/></TextLine>' for p in ("1,2 3,4", "0,3 2,9"))
    (example,) = read(tmp_path, page_of(f'<TextRegion id="a">{lines}</TextRegion>'))
    assert example.inputs.tolist() == [[0, 2, 3, 9, 0]]


def test_text_of_a_region_is_its_own_or_that_of_its_parts(tmp_path):
    def text(words, *parts, name="TextLine"):
        return f"<{name}>{''.join(parts)}<TextEquiv><Unicode>{words}</Unicode></TextEquiv></{name}>"

    line = text("b c", text("x", name="Word"))
    words = f"<TextLine>{text('d', name='Word')}{text('e', name='Word')}</TextLine>"
    empty = "<TextEquiv><Unicode> </Unicode></TextEquiv>"
    cell = f"<TableCell>{line}</TableCell>"
    inner = region("i", inside="<TextEquiv><Unicode>f\ng</Unicode></TextEquiv>")
    regions = [
        region("o", inside=f"{line}<TextEquiv><Unicode>own</Unicode></TextEquiv>"),
        region("l", inside=line + words + empty),
        region("t", "TableRegion", cell + inner),
        region("n", inside=empty),
    ]
    (example,) = read(tmp_path, page_of("".join(regions)))
    assert [*example.page.texts] == ["own", "b c\nd e", "b c\nf\ng", ""]


def test_alto_margins_composed_blocks_and_blocks_without_corners(tmp_path):
    corners = 'HPOS="1" VPOS="2" WIDTH="3" HEIGHT="4"'
    margin = f'<TopMargin {corners}><TextBlock ID="m" {corners}/></TopMargin>'
    inside = (
        f'<ComposedBlock ID="c"><TextBlock ID="c1" {corners}/></ComposedBlock>'
        f'<ComposedBlock ID="t" TYPE="table" {corners}><TextBlock ID="t1" {corners}/>'
        f'</ComposedBlock><Illustration ID="i" {corners}/>'
        f'<TextBlock ID="n"><TextLine HPOS="5" VPOS="6" WIDTH="1" HEIGHT="1"/></TextBlock>'
    )
    text = alto(boxes={}).replace("      <PrintSpace", f"{margin}<PrintSpace")
    text = text.replace("      </PrintSpace>", f"{inside}</PrintSpace>")
    (example,) = read(tmp_path, text)
    assert labels(example) == ["page_header", None, "table", "picture", None]
    assert example.inputs[4, :4].tolist() == [5, 6, 6, 7]


def test_alto_hyphens_at_the_end_of_lines_are_in_the_text(tmp_path):
    text = alto().replace("</TextLine>", '<HYP CONTENT="-"/></TextLine>', 1)
    (example,) = read(tmp_path, text)
    assert [*example.page.texts] == ["right & last-", "left", "héad"]


def test_alto_pages_share_an_order(tmp_path):
    text = alto()
    start, end = text.index("    <Page"), text.index("  </Layout>")
    second = text[start:end].replace('ID="', 'ID="x').replace("TAGREFS", "OLD")
    text = text[:end] + second + text[end:]
    examples = read(tmp_path, text)
    target = tmp_path / "b.xml"
    answers = [[2, 1, 0], [0, 2, 1]]
    answered = [e.replace(outputs=o) for e, o in zip(examples, answers, strict=True)]
    formats.write(str(target), answered, TASK)
    assert [e.outputs.tolist() for e in formats.read(str(target), TASK)] == answers
    assert target.read_text().count("<ReadingOrder>") == 1


COMPLAINTS = {
    "": ":1: not XML: no element found",
    "<PcGts><Page></PcGts>": ":1: not XML: mismatched tag",
    "<mets/>": ":1: expected PAGE-XML (root element PcGts) or ALTO (alto), got 'mets'",
    "<PcGts/>": ":1: expected an element Page",
    "<alto/>": ":1: expected an element Layout",
    '<!DOCTYPE a [\n<!ENTITY b "bb">\n<!ENTITY c "&b;&b;">]><PcGts>&c;</PcGts>': (
        ":2: declares the entity b"
    ),
    "<a>" * 1000: ":1: elements are nested too deeply",
    page_of('<TextRegion id="a"/>'): ":6: TextRegion: expected Coords",
    page_of(
        '<TextRegion id="a"><Coords points=""/></TextRegion>'
    ): ":6: TextRegion: expected Coords",
    page_of('<TextRegion id="a"><Coords points="1,2 3,x"/></TextRegion>'): (
        ":6: y: expected a number, got 'x'"
    ),
    page_of("<TextRegion/>"): ":6: TextRegion: expected an id",
    page_of(
        region("a"),
        '<ReadingOrder><OrderedGroup id="g"><RegionRefIndexed regionRef="a"/></OrderedGroup>'
        "</ReadingOrder>",
    ): ":6: index: expected a number, got nothing",
    alto().replace('HPOS="110"', 'HPOS="inf"'): ":8: HPOS: expected a number, got 'inf'",
    alto().replace(
        'WIDTH="80"', 'WIDTH="-80"'
    ): ": page p1: box 1: expected left <= right, got 110 and",
    alto().replace('ID="r" ', ""): ":8: TextBlock: expected an ID",
    page_of(f"{region('a')}\n<ReadingOrder/>"): ":7: expected ReadingOrder before the regions",
    alto().replace("</alto>", "<ReadingOrder/></alto>"): ":14: expected ReadingOrder before Layout",
}


@pytest.mark.parametrize(("content", "complaint"), COMPLAINTS.items(), ids=range(len(COMPLAINTS)))
def test_refused_with_file_and_line(tmp_path, content, complaint):
    with pytest.raises(InputError) as error:
        read(tmp_path, content)
    assert begins(str(error.value), f"{tmp_path / 'a.xml'}{complaint}"), str(error.value)


def test_other_encodings_are_refused(tmp_path):
    for declared, complaint in {"no-such": "unknown encoding", "utf-8": "not utf-8 text"}.items():
        content = f'<?xml version="1.0" encoding="{declared}"?><a>é</a>'.encode("latin-1")
        with pytest.raises(InputError, match=complaint):
            read(tmp_path, content)
