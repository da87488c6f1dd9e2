package ui

import (
	"context"
	"fmt"
	"strings"

	"github.com/a-h/templ"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// Cells are the values on a page that change while it is open, each under a unique name. The page
// is rendered from them, and only changed cells are sent to it later; app.js writes them into the
// page.
type Cells map[string]string

// Since returns the cells that are not as they are in before.
func (c Cells) Since(before Cells) Cells {
	out := Cells{}
	for key, value := range c {
		if was, known := before[key]; !known || was != value {
			out[key] = value
		}
	}
	return out
}

// flags are the attributes that are there or not.
var flags = map[string]bool{"hidden": true}

// Bind returns attributes whose values are cells: pairs of an attribute and the name of its cell. A
// flag is set while its cell is not empty.
func (c Cells) Bind(pairs ...string) templ.Attributes {
	a := templ.Attributes{}
	var bound []string
	for i := 0; i+1 < len(pairs); i += 2 {
		name, key := pairs[i], pairs[i+1]
		bound = append(bound, name+"="+key)
		if flags[name] {
			a[name] = c[key] != ""
			continue
		}
		a[name] = c[key]
	}
	a["data-bind"] = strings.Join(bound, " ")
	return a
}

// Flag sets the cell key to a flag's value.
func (c Cells) Flag(key string, on bool) {
	c[key] = ""
	if on {
		c[key] = "1"
	}
}

// barColours are the parts of a bar in their order.
var barColours = []string{"sent", "inflight", "skipped", "expired", "dead"}

// SetBar sets the cells of a [LiveBar].
func (c Cells) SetBar(ctx context.Context, key string, n delivery.Counts) {
	widths := map[string]part{}
	for _, p := range parts(n, feedback.Tally{}) {
		widths[p.class] = p
	}
	for _, colour := range barColours {
		p := widths[colour]
		c[key+"."+colour+".x"], c[key+"."+colour+".w"] = short(p.from), short(p.to-p.from)
	}
	c[key+".text"] = barText(ctx, n, feedback.Tally{})
}

// short drops the thousandths, which are not visible.
func short(f float64) string { return fmt.Sprintf("%.0f", f) }

// The inside of a [Spark], in units of its view box.
const sparkHeight = 24.0

// SetSpark sets the path of a [Spark] of the values. Values must not be negative; the height of a
// value is its share of most.
func (c Cells) SetSpark(key string, values []float64, most float64) {
	var b strings.Builder
	for i, v := range values {
		height := 0.0
		if most > 0 {
			height = min(1, v/most) * (sparkHeight - 2)
		}
		fmt.Fprintf(&b, "%c%d %.0f", "ML"[min(i, 1)], 2*i, sparkHeight-1-height)
	}
	c[key] = b.String()
}
