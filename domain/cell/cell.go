// Package cell reads in which cell an id was drawn. A cell is one database that holds whole shops
// (ADR 110). An installation with one database is cell 0.
package cell

import "errors"

// Count is how many cells there may be. Ids of one table and cell are apart by it.
const Count = 64

// MaxOlder is the greatest id above which the ids of a cell may begin: no table has so many rows.
const MaxOlder = 1 << 53

// CodeSerials is how many serial numbers of redeem codes each cell has: a 64th of all.
const CodeSerials = 1 << 34

// OfSerial returns the cell that made the redeem code with the serial number.
func OfSerial(serial int64) Number { return Number((serial - 1) / CodeSerials) }

// ErrUsed is the error for a database that cannot become another cell because it has rows of shops.
var ErrUsed = errors.New("only an empty database can become another cell, because the ids of its rows name the cell that it is")

// ErrInUse is the error for a cell that cannot be taken out of the installation yet.
var ErrInUse = errors.New("the cell is still needed, nothing was changed; it has")

// ErrRemoved is the error for a database that was taken out of the installation.
var ErrRemoved = errors.New("this database was taken out of the installation: leave it out of CELLS, or name an empty database in its place")

// A Number names a cell: 0 to Count - 1.
type Number int

// Valid reports whether there may be a cell with this number.
func (n Number) Valid() bool { return n >= 0 && n < Count }

// Of returns the cell in which id was drawn. since is the first id of its table that names a cell,
// as the table cell_identities of cell 0 has it: lower ids are older than cells, and cell 0 has
// them.
func Of(id, since int64) Number {
	if id < since {
		return 0
	}
	return Number((id - 1) % Count)
}
