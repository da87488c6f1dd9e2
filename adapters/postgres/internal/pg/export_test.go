package pg

// Learn tells the pool of a statement's error.
func (db *DB) Learn(err error) { db.pooling.learn(err) }
