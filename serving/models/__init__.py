"""The models: which versions to serve; loading, swapping and lending them; running one."""
