"""Ctrl-C reaches what the tests start also where they run in the background of a shell, whose children ignore it."""
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
