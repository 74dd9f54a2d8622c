"""The models: which versions should be served; loading, swapping and lending them; running one."""
