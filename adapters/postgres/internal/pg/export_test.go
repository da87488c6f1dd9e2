package pg

// Learn passes a statement's error to the pool.
func (db *DB) Learn(err error) { db.pooling.learn(err) }
