"""The driver's side of Supplier.run: sessions, the job that starts ranks, their supervision, results."""
