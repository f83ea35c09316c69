"""Draw pages by a grammar, with the boxes in reading order.

The order of the boxes is the order in which the grammar draws them, so no rule computes it.

- `dice`: random numbers, drawn in bulk
- `labels`: the names of labels
- `page`: boxes, regions, the style of a page
- `blocks`: paragraphs, headings, figures, formulas, and the columns that they fill
- `bands`: what lies across a page: columns, cards, tables, glossaries, forms
- `layouts`: one function for each kind of page, and what is around its body
- `spoiling`: mistakes of detectors, and how a page comes to have exactly n boxes
- `sampling`: the choice of a kind of page for n boxes
"""

from ptrnet.pages.sampling import sample_page as sample_page
