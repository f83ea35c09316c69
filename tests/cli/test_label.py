"""`ptrnet label`."""


def test_label_replaces_answers(tmp_path, ptrnet, points):
    bare = tmp_path / "bare.txt"
    bare.write_text("".join(f"{x.split(' output ')[0]}\n" for x in points.read_text().splitlines()))
    labelled = tmp_path / "labelled.txt"
    arguments = ("--labeller", "monotone-chain", "--output", labelled)
    assert ptrnet("label", "hull", bare, *arguments)[0] == 0
    assert labelled.read_bytes() == points.read_bytes()
