"""The engines beside the simulator, which is compiled (`mptcplab._core`): the kernel's program and the fluid."""
