package pg

// Erasing is the advisory lock, as SQL, that an erasure of a user holds while it is
// recorded, and that every writer of user data shares: writes that began before have
// ended then, and later ones see the erasure.
const Erasing = `hashtextextended('dropbell:erasing', 0)`
