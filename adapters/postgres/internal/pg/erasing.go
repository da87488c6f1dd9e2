package pg

// Erasing is the key, as SQL, of an advisory lock. The erasure of a user holds
// the lock exclusively while the erasure is recorded, and every writer of user
// data holds it shared. So writes that began before the erasure have ended by
// then, and later writes see the erasure.
const Erasing = `hashtextextended('dropbell:erasing', 0)`
