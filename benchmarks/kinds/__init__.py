"""Kinds of Functions that an outside examination found answered wrongly: members, and what is to be said of each."""
