"""Operations are those of the formulas; recorded products are computed again as they were."""

import torch
from torch import nn

from ptrnet import tasks
from ptrnet.bench import roofline
from ptrnet.bench.roofline import Operand, Product, ProductsAlone, record_products
from ptrnet.bench.train import recipe_for, recorder
from ptrnet.data.streams import CutStream, ExampleStream


def operations(products):
    return sum(product.operations * count for product, count in products.items())


def test_linear_layer_has_three_products_in_the_dtype_of_autocast():
    layer, x = nn.Linear(5, 3), torch.rand(7, 5, requires_grad=True)

    def work():
        with torch.autocast("cpu", torch.bfloat16):
            layer(x).sum().backward()

    products = record_products(work)
    assert operations(products) == 3 * 2 * 7 * 5 * 3 and products.total() == 3
    assert {p.left.dtype for p in products} == {torch.bfloat16}
    assert (
        Product(Operand((7, 5), (5, 1), torch.bfloat16), Operand((5, 3), (1, 5), torch.bfloat16))
        in products
    )


def test_replayed_products_have_the_same_layouts_and_counts():
    rows, batch = torch.rand(4, 6), torch.rand(2, 9, 5)

    def work():
        rows @ rows.T
        rows @ rows.T
        torch.baddbmm(torch.zeros(()), batch[:, ::2], batch[:, 3:4].transpose(1, 2))
        rows @ torch.rand(6, 0)
        rows @ torch.rand(6)

    products = record_products(work)
    assert operations(products) == 2 * (2 * 4 * 6 * 4) + 2 * 2 * 5 * 5
    assert record_products(ProductsAlone(products, "cpu")) == products


def test_recorded_operations_of_ptr_net_are_near_the_formula():
    n, batch_size, units = 9, 6, 32
    recipe = recipe_for("hull", n, batch_size, units, "float32", "cpu", 0)
    task = tasks.get("hull")
    batch = ExampleStream(task, [n], batch_size, 0).batch(0)
    steps = batch.targets.shape[1]
    expected = 3 * roofline.operations(batch_size, units, n, n + task.num_specials, steps)
    # The formula leaves out coordinates, and counts unneeded gradients of initial zeros.
    assert 0.85 * expected < operations(recorder(recipe)(batch)) < 1.15 * expected


def test_recorded_operations_of_transformer_are_the_sum_of_its_layers():
    n, batch_size, units = 9, 6, 32
    recipe = recipe_for("hull", n, batch_size, units, "float32", "cpu", 0, "transformer-ptr-net")
    settings = recipe.network
    batch = ExampleStream(tasks.get("hull"), [n], batch_size, 0).batch(0)
    slots, steps, inner = n + 1, batch.targets.shape[1], settings.feed_forward
    feed_forward = 2 * units * inner
    reading = slots * (4 * units**2 + feed_forward + 2 * slots * units)
    writing = steps * (6 * units**2 + feed_forward + 2 * (steps + slots) * units)
    others = slots * 2 * units**2  # keys and values of the cross-attention
    pointer = slots * units**2 + steps * slots * units
    expected = settings.encoder_layers * reading + settings.decoder_layers * (writing + others)
    expected = 3 * 2 * batch_size * (expected + pointer + n * 2 * units)
    coordinates = 2 * batch_size * n * 2 * units  # need no gradient
    assert operations(recorder(recipe)(batch)) == expected - coordinates


def test_recorded_operations_shrink_with_the_remaining_elements():
    """`remaining-ptr-net` encodes only elements that are not yet in the answer."""
    n, batch_size = 20, 4
    recipe = recipe_for("tsp", n, batch_size, 32, "float32", "cpu", 0, "remaining-ptr-net")
    task = tasks.get("tsp")
    batch = CutStream(ExampleStream(task, [n], batch_size, 0), task, 1, 0).batch(0)
    record = recorder(recipe)
    early, late = (operations(record(batch._replace(num_known=k))) for k in (1, n - 4))
    # Linear in the elements that are encoded, except attention, which falls faster.
    rows = [n - known + 2 for known in (1, n - 4)]
    assert late < 1.3 * early * rows[1] / rows[0]


def test_operations_equal_those_of_plain_loops():
    """A product has two operations per number of its left and column of its right factor."""
    batch, units, elements, slots, steps = 3, 5, 7, 8, 4
    products = [(batch * elements, units, 4 * units), (batch * slots, units, units)]
    products += [(batch * steps, units, 4 * units), (batch * steps, units, units)]
    expected = sum(2 * rows * inner * columns for rows, inner, columns in products)
    assert roofline.operations(batch, units, elements, slots, steps) == expected
