package shell

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/user"
	pageparts "dropbell/views/pages/parts"
)

// A List is a list that is read by keyset: page by page for the console, completely for a file.
type List[Row any, Key comparable] struct {
	Keys[Key]
	// Broken are the filters that cannot be read. Nothing is read then.
	Broken []fault.Field
	// Read returns at most limit rows after the row with the key after; the zero key is the
	// beginning.
	Read func(after Key, limit int) ([]Row, error)
	// Whole is Read for files, nil = files use Read.
	Whole func(after Key, limit int) ([]Row, error)
	// KeyOf returns the key of a row.
	KeyOf func(Row) Key
	// File is the list as a file; without a name there is none.
	File File[Row]
}

// Page reads the page that the address names.
func (l List[Row, Key]) Page(r *http.Request) ([]Row, pageparts.Paged, error) {
	if len(l.Broken) > 0 {
		return nil, pageparts.Paged{Errors: l.Broken}, nil
	}
	list, err := l.Read(l.In(r), PageSize+1)
	if err != nil {
		return nil, pageparts.Paged{}, err
	}
	var next Key
	more := len(list) > PageSize
	if more {
		list = list[:PageSize]
		next = l.KeyOf(list[PageSize-1])
	}
	p := l.Paged(r, PageSize, more, next)
	if l.File.Name != "" {
		p.Export = ExportURL(r)
	}
	return list, p, nil
}

// CSV serves the file of the list that read returns.
func CSV[Page, Row any, Key comparable](sh *Shell, read func(*http.Request) (Page, List[Row, Key], error)) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		_, l, err := read(r)
		if err != nil {
			return err
		}
		return l.Send(sh, w, r)
	}
}

// Send sends all rows as a file.
func (l List[Row, Key]) Send(sh *Shell, w http.ResponseWriter, r *http.Request) error {
	if len(l.Broken) > 0 {
		return &fault.Fields{List: l.Broken}
	}
	return l.File.Send(sh, w, r, func(write func(Row) error) error {
		return l.Pages(func(list []Row) error { return Each(list)(write) })
	})
}

// Pages hands all rows to write, at most [ExportPage] at once. No filter may be broken.
func (l List[Row, Key]) Pages(write func([]Row) error) error {
	read := l.Read
	if l.Whole != nil {
		read = l.Whole
	}
	for after := *new(Key); ; {
		list, err := read(after, ExportPage)
		if err == nil {
			err = write(list)
		}
		if err != nil || len(list) < ExportPage {
			return err
		}
		after = l.KeyOf(list[len(list)-1])
	}
}

// Keys writes the keys of rows into the addresses of pages, and reads them there.
type Keys[Key comparable] struct {
	// Param is the parameter that holds the key of the last row of the page before.
	Param string
	Text  func(Key) string
	// Parse returns the zero key for text that Text has not written.
	Parse func(string) Key
	// URL returns the address of the page after a key; the key is empty for the first page. If URL
	// is nil, the address is the address of the request with Param changed and without empty
	// parameters.
	URL func(key string) string
}

// In returns the key in the address.
func (k Keys[Key]) In(r *http.Request) Key { return k.Parse(r.FormValue(k.Param)) }

// Paged returns the addresses of other pages. rows is the number of rows of this page. more reports
// that there are rows after next.
func (k Keys[Key]) Paged(r *http.Request, rows int, more bool, next Key) (p pageparts.Paged) {
	if k.URL == nil {
		k.URL = func(key string) string { return WithQuery(r, k.Param, key) }
	}
	if more {
		p.Next, p.Further = k.URL(k.Text(next)), rows < PageSize
	}
	if k.In(r) != *new(Key) {
		p.First = k.URL("")
	}
	return p
}

// IDs are the keys of lists that begin with the largest id.
func IDs() Keys[int64] { return numbers("before") }

// Lines are the keys of lists that begin with the smallest number.
func Lines() Keys[int64] { return numbers("after") }

func numbers(param string) Keys[int64] {
	return Keys[int64]{Param: param, Text: func(n int64) string { return strconv.FormatInt(n, 10) }, Parse: func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return max(0, n)
	}}
}

// UserIDs are the keys of lists of users.
func UserIDs() Keys[user.ID] {
	return Keys[user.ID]{Param: "after", Text: user.ID.String, Parse: func(s string) user.ID {
		id, _ := user.ParseID(s)
		return id
	}}
}

// A Place is the key of a row in a list in the order of an instant and a number.
type Place struct {
	At time.Time
	ID int64
}

// maxMicros is the end of the year 9999 in microseconds of Unix, the latest instant that a
// key in an address may have.
const maxMicros = 253_402_300_799_999_999

// Places are the keys of lists ordered by an instant. The text of a key is the instant in Unix
// microseconds, the separator and the number.
func Places(separator string) Keys[Place] {
	return Keys[Place]{Param: "after", Text: func(p Place) string { return fmt.Sprintf("%d%s%d", p.At.UnixMicro(), separator, p.ID) }, Parse: func(s string) Place {
		at, id, _ := strings.Cut(s, separator)
		micros, err1 := strconv.ParseInt(at, 10, 64)
		n, err2 := strconv.ParseInt(id, 10, 64)
		if err1 != nil || err2 != nil || micros <= 0 || micros > maxMicros {
			return Place{}
		}
		return Place{time.UnixMicro(micros).UTC(), n}
	}}
}
