"""The engines: the simulator, the kernel engine's program and the fluid. `capabilities` says what each can do."""
