"""Limits that processes share: in virtual time, against JavaScript, and real."""
