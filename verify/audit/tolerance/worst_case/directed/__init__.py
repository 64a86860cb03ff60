"""Worst cases that follow along which keys an error of the state lies."""
