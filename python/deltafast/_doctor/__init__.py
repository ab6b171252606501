"""What `deltafast.doctor` looks for."""
