"""The stock Linux kernel in virtual time: the kernel engine's program inside a virtual machine."""
