// Package drawcheck is the command dropbell verify-draw: it recomputes draws from what was published.
package drawcheck

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"dropbell/adapters/beacon"
	"dropbell/adapters/config"
	"dropbell/domain/draw"
)

const usage = `dropbell verify-draw recomputes a draw and says whether it followed its card.

  dropbell verify-draw FILE                   a draw in a file, such as docs/fair/draw.json
  dropbell verify-draw URL                    a draw at a server, such as https://shop.example/api/v1/draws/42
  dropbell verify-draw --example N > FILE     write an example with N entries, made with a new key and a new local
                                              beacon; with --receipt FILE also the receipt of its first entry

It needs no account and no key. docs/fair.md describes the protocol. Exit codes: 0 the draw is as it must be so far;
1 a check found a fault; 2 the draw could not be read.

`

// Main runs the command. It returns a [config.Mistake] if there is nothing to check.
func Main(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("verify-draw", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() { fmt.Fprint(out, usage); flags.PrintDefaults() }
	key := flags.String("key", "", "the operator's public key, from a source other than the draw")
	seal := flags.String("seal", "", "`FILE` with the seal, kept before the random value existed")
	receipt := flags.String("receipt", "", "`FILE` with the receipt of an entry")
	light := flags.Bool("light", false, "do not read the list: with --receipt, check that the ticket is in it by its path")
	example := flags.Int("example", 0, "write an example with `N` entries")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err == nil && *example > 0 && *example <= draw.MaxEntries && flags.NArg() == 0:
		return writeExample(*example, *receipt, out)
	case err == nil && (flags.NArg() != 1 || *example != 0):
		err = errors.New("verify-draw takes one file or address; see dropbell verify-draw --help")
	}
	if err != nil {
		return config.Mistake{Err: err}
	}
	kept := draw.Kept{Key: *key, Light: *light}
	var rows []draw.Row
	var published draw.Published
	for file, to := range map[string]*string{*seal: &kept.Seal, *receipt: &kept.Receipt} {
		if file != "" && err == nil {
			var raw []byte
			raw, err = os.ReadFile(file)
			*to = string(raw)
		}
	}
	if err == nil {
		published, err = readDraw(ctx, flags.Arg(0), kept)
	}
	if err == nil && !kept.Light {
		rows, err = draw.Rows(published.List...)
	}
	if err != nil {
		return config.Mistake{Err: fmt.Errorf("the draw cannot be read: %w", err)}
	}
	return tell(draw.Verify(published, rows, kept, beacon.Judge{}), out)
}

// tell prints a report and returns an error if it has a fault.
func tell(r draw.Report, out io.Writer) error {
	for _, f := range r {
		fmt.Fprintln(out, map[bool]string{true: "ok    ", false: "WRONG "}[f.OK], f.Text)
	}
	fmt.Fprintln(out, "note  ", draw.NotProved)
	if !r.Sound() {
		return errors.New("the draw is not as it must be")
	}
	return nil
}

// readDraw reads a draw from a file or a server: with its list unless that is not wanted, and with the path of the ticket
// of the receipt if there is one.
func readDraw(ctx context.Context, from string, kept draw.Kept) (draw.Published, error) {
	var p draw.Published
	address, err := url.Parse(from)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" {
		raw, err := os.ReadFile(from)
		if err != nil {
			return p, err
		}
		return p, json.Unmarshal(raw, &p)
	}
	base := strings.TrimSuffix(strings.TrimSuffix(from, "/"), "/proof")
	proof := base + "/proof"
	if ticket := draw.TicketOf(kept.Receipt); ticket != "" {
		proof += "?ticket=" + ticket
	}
	raw, err := get(ctx, proof, 16<<20)
	if err != nil && proof != base+"/proof" { // the ticket is not in the list, which the check says
		raw, err = get(ctx, base+"/proof", 16<<20)
	}
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	p.List = nil
	for err == nil && !kept.Light && p.Seal != "" && len(p.List) <= draw.MaxEntries/draw.ChunkRows {
		if raw, err = get(ctx, fmt.Sprintf("%s/list?chunk=%d", base, len(p.List)), draw.ChunkRows*draw.RowSize); err != nil || len(raw) == 0 {
			break
		}
		p.List = append(p.List, raw)
		if len(raw) < draw.ChunkRows*draw.RowSize {
			break
		}
	}
	return p, err
}

// get returns the body at address, which has at most limit bytes.
func get(ctx context.Context, address string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err == nil && (answer.StatusCode != http.StatusOK || int64(len(raw)) > limit) {
		err = fmt.Errorf("%s answers %s with %d bytes", address, answer.Status, len(raw))
	}
	return raw, err
}
