"""torch: tensors in, operations of torch.library, its autograd."""
