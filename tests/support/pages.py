"""Documents of pages in each format, written after the formats' schemas."""

import json

# A heading above two columns; the document has the right column first.
BOXES = {"r": (110, 50, 190, 280), "l": (10, 50, 90, 280), "h": (10, 10, 190, 40)}
TEXTS = {"r": "right & last", "l": "left", "h": "héad"}


def page_xml(order="", boxes=BOXES, prefix="pc:"):
    regions = "".join(
        f'    <{prefix}TextRegion id="{id}" type="{"heading" if id == "h" else "paragraph"}" '
        f'custom="a > b">\n      <{prefix}Coords points="{x0},{y0} {x1},{y0} {x1},{y1}"/>\n'
        f"      <{prefix}TextEquiv><{prefix}Unicode>{TEXTS.get(id, '').replace('&', '&amp;')}"
        f"</{prefix}Unicode></{prefix}TextEquiv></{prefix}TextRegion>\n"
        for id, (x0, y0, x1, y1) in boxes.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<{prefix}PcGts xmlns{':pc' * bool(prefix)}="
        '"http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15">\n'
        f"  <{prefix}Metadata><{prefix}Creator>é > ü</{prefix}Creator></{prefix}Metadata>\n"
        f'  <{prefix}Page imageFilename="a.png" imageWidth="200" imageHeight="300">\n'
        f'    <{prefix}PrintSpace><{prefix}Coords points="0,0 200,300"/></{prefix}PrintSpace>\n'
        f"{order}{regions}  </{prefix}Page>\n</{prefix}PcGts>\n"
    )


def alto(order="", boxes=BOXES):
    blocks = "".join(
        f'        <TextBlock ID="{id}" HPOS="{x0}" VPOS="{y0}" WIDTH="{x1 - x0}" '
        f'HEIGHT="{y1 - y0}" TAGREFS="{"T2" if id == "h" else "T1"}"><TextLine>'
        + "<SP/>".join(
            f'<String CONTENT="{word.replace("&", "&amp;")}"/>'
            for word in TEXTS.get(id, "").split()
        )
        + "</TextLine></TextBlock>\n"
        for id, (x0, y0, x1, y1) in boxes.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#">\n'
        "  <Description><MeasurementUnit>pixel</MeasurementUnit><sourceImageInformation>"
        "<fileName>a.png</fileName></sourceImageInformation></Description>\n"
        '  <Tags><OtherTag ID="T1" LABEL="MainZone"/><OtherTag ID="T2" LABEL="heading"/></Tags>\n'
        f'{order}  <Layout>\n    <Page ID="p1" WIDTH="200" HEIGHT="300">\n'
        f'      <PrintSpace HPOS="0" VPOS="0" WIDTH="200" HEIGHT="300">\n{blocks}'
        "      </PrintSpace>\n    </Page>\n  </Layout>\n</alto>\n"
    )


def hocr(boxes=BOXES, kind="ocr_carea"):
    blocks = "".join(
        f"   <div class='{kind}' id='{id}' title=\"bbox {x0} {y0} {x1} {y1}\">\n    <p>"
        f"{TEXTS.get(id, '').replace('&', '&amp;')}<br></p>\n   </div>\n"
        for id, (x0, y0, x1, y1) in boxes.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n<html>\n'
        '<head><meta http-equiv="Content-Type" content="text/html;charset=utf-8"/></head>\n<body>\n'
        "  <div class='ocr_page' id='page_1' title='image \"a.png\"; bbox 0 0 200 300'>\n"
        f"{blocks}  </div>\n</body>\n</html>\n"
    )


def docling(boxes=BOXES):
    texts = [
        {
            "self_ref": f"#/texts/{k}",
            "label": "section_header" if id == "h" else "text",
            "text": TEXTS.get(id, ""),
            "prov": [
                {
                    "page_no": 1,
                    "bbox": {
                        "l": x0, "t": 300 - y0, "r": x1, "b": 300 - y1,
                        "coord_origin": "BOTTOMLEFT",
                    },
                }
            ],
        }
        for k, (id, (x0, y0, x1, y1)) in enumerate(boxes.items())
    ]  # fmt: skip
    value = {
        "schema_name": "DoclingDocument",
        "body": {"children": [{"$ref": text["self_ref"]} for text in texts]},
        "texts": texts,
        "pages": {"1": {"size": {"width": 200.0, "height": 300.00}}},
    }
    return json.dumps(value, indent=1, ensure_ascii=False)


def coco(boxes=BOXES):
    annotations = ",\n".join(
        f'  {{"id": {k}, "image_id": 7, "category_id": {1 + (id == "h")}, '
        f'"bbox": [{x0}, {y0}.0, {x1 - x0}, {y1 - y0}]}}'
        for k, (id, (x0, y0, x1, y1)) in enumerate(boxes.items())
    )
    return (
        '{"images": [{"id": 7, "file_name": "a.png", "width": 200, "height": 300}],\n'
        f' "annotations": [\n{annotations}],\n'
        ' "categories": [{"id": 1, "name": "Text"}, {"id": 2, "name": "Section-header"}]}\n'
    )


def boxes_json(boxes=BOXES):
    labels = ["section_header" if id == "h" else "text" for id in boxes]
    value = {"boxes": [*map(list, boxes.values())], "labels": labels, "page": [200, 300]}
    return json.dumps([value])


def pdf(lines, rotation=0):
    """Return a PDF of a page of 200 x 300 points with texts at positions x, y from below."""
    shown = "".join(f"BT /F 10 Tf {x} {y} Td ({text}) Tj ET\n" for x, y, text in lines)
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 300] /Contents 4 0 R "
        f"/Rotate {rotation} /Resources << /Font << /F 5 0 R >> >> >>",
        f"<< /Length {len(shown)} >>\nstream\n{shown}endstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    text, starts = "%PDF-1.4\n", []
    for k, content in enumerate(objects, 1):
        starts.append(len(text))
        text += f"{k} 0 obj\n{content}\nendobj\n"
    entries = "".join(f"{start:010} 00000 n \n" for start in starts)
    return (
        f"{text}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{entries}trailer\n"
        f"<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    ).encode()


# For each format: the extension, and the function that makes a document.
DOCUMENTS = {
    "page-xml": ("xml", page_xml),
    "alto": ("xml", alto),
    "hocr": ("hocr", hocr),
    "docling": ("json", docling),
    "coco": ("json", coco),
    "boxes": ("json", boxes_json),
}
