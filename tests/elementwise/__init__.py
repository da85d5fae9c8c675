"""Element-wise operations on the CPU: values, dtypes, layouts, functions of a user."""
