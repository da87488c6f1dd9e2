// Package cells joins the web programs of several cells behind one address (ADR 110). A cell is one
// database that holds whole shops, and each cell has a web program of its own in this process. The
// front finds the program of a request by the id in its path, or by the drop, the shop or the code in
// its body. Lists of one user, and lists of all shops, are asked of all cells and merged. A cell that
// does not answer is named in a header of the answer.
package cells

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"dropbell/domain/cell"
)

// MissingHeader names the cells that did not answer, separated by commas. The answer has the parts of
// the other cells.
const MissingHeader = "Dropbell-Cells-Missing"

// ChoicePath is where the console stores which cell's lists it shows.
const ChoicePath = "/cells"

// CellCookie is the cookie with the name of the cell whose lists the console shows.
const CellCookie = "dropbell_cell"

const (
	// maxBody is the size of a body that is read to find its cell, in bytes. Greater bodies are
	// uploads, whose path names the cell.
	maxBody = 128 << 10
	// bodyWithin is how long a client may take to send such a body.
	bodyWithin = 10 * time.Second
	// reading is how many such bodies are read at a time.
	reading = 2048
	// patience is how long a question to all cells waits for a cell.
	patience = 2 * time.Second
	// silentFor is how long a cell that did not answer in time is left out of such questions. After that
	// a single question per silentFor is put to the cell again, until it answers.
	silentFor = 500 * time.Millisecond
	// remembered is how many ids of shops that moved are remembered.
	remembered = 100_000
)

// A Cell is the web program of one database.
type Cell struct {
	Name    string
	Handler http.Handler
	// silent is until when the cell is left out of questions to all cells, in Unix nanoseconds. 0 = the
	// cell answers.
	silent atomic.Int64
}

// asked reports whether a question to all cells is put to the cell at now.
func (c *Cell) asked(now time.Time) bool {
	until := c.silent.Load()
	return until == 0 || now.UnixNano() >= until && c.silent.CompareAndSwap(until, now.Add(silentFor).UnixNano())
}

// A Map says where shops are.
type Map struct {
	// Shops has the cell of each shop by its number.
	Shops map[int64]cell.Number
	// Moved are the cells that have taken shops of other cells.
	Moved []cell.Number
	// Known is whether all cells have told their shops.
	Known bool
	// Older has for each cell the greatest id that cannot be of the cell: ids up to it are of cell 0.
	Older []int64
}

// Places says where shops are, and finds a cell for a new shop.
type Places interface {
	// Map returns the present map. It does not wait for a database.
	Map() *Map
	// Settle calls do with the cell of a shop that may be new: such a shop gets the cell with the fewest
	// shops, and no other process settles a shop until do returns.
	Settle(ctx context.Context, shop int64, do func(cell.Number)) error
}

// Options are what a front needs beside its cells. All are required.
type Options struct {
	Places Places
	// CodeCell returns the cell whose serial numbers the redeem code has; false for a text that is no
	// code.
	CodeCell func(typed string) (cell.Number, bool)
	// LinkDrop returns the drop of a link's token in a message about a drop.
	LinkDrop func(token string) (int64, bool)
	// LinkCampaign returns the campaign of a link's token in a message of a campaign.
	LinkCampaign func(token string) (int64, bool)
	// Lists are the operations of the API whose answers all cells have a part of.
	Lists []Operation
	// OfOne reports whether the address is of a page of the console that is about one cell.
	OfOne func(method, path string) bool
	// Now is the clock.
	Now func() time.Time
}

// Front answers requests with the program of their cell. Front is safe for concurrent use.
type Front struct {
	Options
	cells []*Cell
	// known remembers the cell of ids whose shop has moved.
	known  *otter.Cache[int64, cell.Number]
	bodies atomic.Int64  // being read
	retry  time.Duration // see [retryStream]
}

// New returns the front of the cells, which stand at their numbers. Cell 0 is home.
func New(cells []*Cell, o Options) *Front {
	return &Front{Options: o, cells: cells, retry: retryStream, known: otter.Must(&otter.Options[int64, cell.Number]{MaximumSize: remembered})}
}

// Closed passes requests to next while open returns true, and refuses them otherwise: the cell's
// database does not have its copies of home's rows yet, or is not the cell that CELLS says.
func Closed(next http.Handler, open func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open() {
			refuse(w, r, errSilent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ServeHTTP is part of [http.Handler].
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	where := f.route(r)
	if where.reads || where.form {
		body, err := f.body(w, r)
		if err != nil {
			refuse(w, r, err)
			return
		}
		if where.form {
			values, _ := url.ParseQuery(string(body)) // the program refuses what cannot be read
			where, _ = f.byDrop(values)
		} else {
			where = f.byBody(where, body)
		}
	}
	where.serve(f, w, r)
}

var errBusy = errors.New("too many bodies are being read")

// body reads the body of the request, which can then be read again.
func (f *Front) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	defer f.bodies.Add(-1)
	if f.bodies.Add(1) > reading {
		return nil, errBusy
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyWithin))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	_ = control.SetReadDeadline(time.Time{})
	if err == nil && len(body) <= maxBody {
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		return body, nil
	}
	var rest io.Reader = r.Body
	if err != nil {
		rest = failing{err}
	}
	r.Body = joined{io.MultiReader(bytes.NewReader(body), rest), r.Body}
	return body, nil
}

// joined is a body of which the start was read.
type joined struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// again returns a copy of r for one of several cells, with a body of its own.
func again(ctx context.Context, r *http.Request, body []byte) *http.Request {
	c := r.Clone(ctx)
	c.Body = io.NopCloser(bytes.NewReader(body))
	return c
}

// hold returns the whole body of r, which a question to several cells repeats.
func hold(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errTooLarge
	}
	return body, err
}

var errTooLarge = errors.New("the body is too large for a request that all cells answer")
