"""gua: samples the GPUs of one host and tells worked, held, free, unknown and unobserved time apart."""

__version__ = "0.1.0"
