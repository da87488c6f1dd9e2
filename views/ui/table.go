package ui

// A Column is the head of a column of a table.
type Column struct {
	// Key and Args are the message in the catalogue.
	Key  string
	Args []any
	// Class is the class of the head, such as "number".
	Class string
	// Unseen is set for a head that is read out and not shown.
	Unseen bool
}

// Columns are the heads of a table.
type Columns []Column

// Heads are columns of texts.
func Heads(keys ...string) Columns { return Columns{}.Texts(keys...) }

// Texts adds columns of texts.
func (c Columns) Texts(keys ...string) Columns {
	for _, key := range keys {
		c = append(c, Column{Key: key})
	}
	return c
}

// When adds a column of texts that the table has only then.
func (c Columns) When(shown bool, key string, args ...any) Columns {
	if shown {
		c = append(c, Column{Key: key, Args: args})
	}
	return c
}

// Number adds a column of numbers.
func (c Columns) Number(key string) Columns { return append(c, Column{Key: key, Class: "number"}) }

// Unseen adds a column whose head only screen readers read, such as the column of buttons.
func (c Columns) Unseen(key string) Columns { return append(c, Column{Key: key, Unseen: true}) }
