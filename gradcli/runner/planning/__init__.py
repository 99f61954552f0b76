"""From targets as they are typed to the cases of a run; the user's code is not imported here."""
