"""What programs call: methods and operators of Tensor, their types, printing, saving, and settings of the library."""
