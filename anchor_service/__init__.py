"""Makes savepoints provable on a ledger: the program, the ledgers, submission."""
