"""The pages' programs in every kind of session."""
