"""Models as ONNX graphs for programs in any language, checked against PyTorch."""
