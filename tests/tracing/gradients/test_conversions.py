"""What a conversion of a module writes back to its parameters is neither a use of them nor a cut."""

from tests.tracing.tracing import fate, traced


def test_a_conversion_of_a_module_is_no_use_of_its_parameters_and_cuts_nothing(framework):
    def loss():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        net = framework.nn.Linear(2, 1).double()
        w = net.weight.detach()
        return (w * x.double()).sum()

    graph = traced(framework, loss)
    assert "takes it out of the graph with detach()" in fate(graph, "weight").why
    assert fate(graph, "bias").why.endswith("no traced operation used it")
