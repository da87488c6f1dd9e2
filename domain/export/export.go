// Package export writes the rows of drops that are over to a store of files, where programs of the
// shop read them: one file for each kind of rows, and a manifest that is written last.
package export

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"dropbell/domain/fault"
)

// Format names the layout of the files and of the manifest. A change that readers must follow gets
// another number.
const Format = "dropbell-export/1"

// ErrUnreachable is returned by [Files] while the store of files does not answer.
var ErrUnreachable = fault.New(fault.Unavailable, "export_store_away", "the store of exports does not answer; check EXPORTS_S3_ENDPOINT and try again")

// A Drop is a drop to be exported.
type Drop struct {
	TemplateID int64     `json:"template_id,string"`
	ShopNumber int64     `json:"shop_number,string"`
	Name       string    `json:"name"`
	Currency   string    `json:"currency"`
	State      string    `json:"state"`
	Stock      int64     `json:"stock"`
	Issued     int64     `json:"issued"`
	OpensAt    time.Time `json:"opens_at"`
	ClosesAt   time.Time `json:"closes_at"`
	// Final says that no further export follows: all coupons of the drop have expired.
	Final bool `json:"final"`
	// At is the instant whose rows are exported, by the database's clock.
	At time.Time `json:"exported_at"`
}

// prefix is the folder of the drop's files.
func (d Drop) prefix() string {
	return "exports/" + strconv.FormatInt(d.ShopNumber, 10) + "/" + strconv.FormatInt(d.TemplateID, 10) + "/"
}

// A File is one file of an export.
type File struct {
	Name    string `json:"name"`
	Rows    int64  `json:"rows"`
	Bytes   int64  `json:"bytes"`  // as it is stored
	SHA256  string `json:"sha256"` // of the stored bytes, in hexadecimal digits
	Columns string `json:"columns"`
}

// A Manifest describes an export. Readers begin with it: all files that it names are complete.
type Manifest struct {
	Format string `json:"format"`
	Drop
	Files []File `json:"files"`
}

// Sums returns the number of rows and bytes of all files.
func (m Manifest) Sums() (rows, bytes int64) {
	for _, f := range m.Files {
		rows, bytes = rows+f.Rows, bytes+f.Bytes
	}
	return rows, bytes
}

// A Table is one kind of rows of a drop.
type Table struct {
	Name    string
	Columns string // separated by commas
	// Copy writes the rows as CSV, with the columns as the first line, and returns their number.
	Copy func(ctx context.Context, to io.Writer) (int64, error)
}

// Store knows the drops to be exported.
type Store interface {
	// Next calls write with the drop that has been due for the longest time, and with its rows as
	// of one instant. When write has succeeded, Next stores that the drop is exported. After
	// [ErrUnreachable] the drop stays due; after any other failure, and if the process dies, it is due again
	// later, so that the drops behind it come first. Drops
	// that another worker exports are passed over. found is false if no drop is due.
	Next(ctx context.Context, write func(Drop, []Table) (Manifest, error)) (found bool, err error)
}

// Files is a store of files.
type Files interface {
	// Write stores a file under the key and replaces an earlier one. If content returns an error,
	// nothing is stored. It returns [ErrUnreachable] if the store does not answer.
	Write(ctx context.Context, key string, content io.Reader) error
}

// An Exporter exports drops.
type Exporter struct {
	Store Store
	Files Files
}

// Run exports the drops that are due, one after the other. A drop whose export fails, or whose
// worker dies, is exported anew by a later run, under the same keys. Run returns the failures of all drops.
func (e *Exporter) Run(ctx context.Context) (failed error) {
	for ctx.Err() == nil {
		found, err := e.Store.Next(ctx, func(d Drop, tables []Table) (Manifest, error) { return e.write(ctx, d, tables) })
		failed = errors.Join(failed, err)
		if !found || errors.Is(err, ErrUnreachable) {
			return failed
		}
	}
	return errors.Join(failed, ctx.Err())
}

func (e *Exporter) write(ctx context.Context, d Drop, tables []Table) (Manifest, error) {
	m := Manifest{Format: Format, Drop: d}
	for _, t := range tables {
		f, err := e.writeTable(ctx, d.prefix(), t)
		if err != nil {
			return m, fmt.Errorf("%s of drop %d: %w", t.Name, d.TemplateID, err)
		}
		m.Files = append(m.Files, f)
	}
	content, write := io.Pipe()
	go func() {
		out := json.NewEncoder(write)
		out.SetIndent("", "  ")
		write.CloseWithError(out.Encode(m))
	}()
	return m, e.Files.Write(ctx, d.prefix()+"manifest.json", content)
}

// writeTable streams the rows through a compressor into the store.
func (e *Exporter) writeTable(ctx context.Context, prefix string, t Table) (File, error) {
	f := File{Name: t.Name + ".csv.gz", Columns: t.Columns}
	content, write := io.Pipe()
	sum := sha256.New()
	counted := &counter{to: io.MultiWriter(write, sum)}
	ended := make(chan error, 1)
	go func() {
		z := gzip.NewWriter(counted)
		var err error
		f.Rows, err = t.Copy(ctx, z)
		err = errors.Join(err, z.Close())
		write.CloseWithError(err)
		ended <- err
	}()
	err := e.Files.Write(ctx, prefix+f.Name, content)
	content.CloseWithError(io.ErrClosedPipe) // ends the copy if the store stopped reading
	if failed := <-ended; failed != nil && (err == nil || !errors.Is(failed, io.ErrClosedPipe)) {
		return f, errors.Join(err, failed)
	}
	f.Bytes, f.SHA256 = counted.n, hex.EncodeToString(sum.Sum(nil))
	return f, err
}

type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}
