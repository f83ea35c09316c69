"""Models as ONNX graphs, for programs in any language: what is written is checked against PyTorch."""
