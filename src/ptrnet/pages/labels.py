"""The columns of a page's boxes, and the names of their labels."""

# Names of docling, and two for old prints. Label k is LABELS[k - 1]; label 0 is missing.
LABELS = (
    "text", "section_header", "title", "list_item", "caption", "footnote", "page_header",
    "page_footer", "table", "picture", "formula", "code", "document_index", "form", "marginal",
    "drop_capital",
)  # fmt: skip
LEFT, TOP, RIGHT, BOTTOM, LABEL = range(5)
