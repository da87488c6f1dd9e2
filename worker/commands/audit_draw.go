package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"dropbell/app"
	"dropbell/domain/draw"
	"dropbell/domain/template"
)

// auditDraw prints the account of the entries of a template's draw, if it has one.
func auditDraw(ctx context.Context, stores app.Stores, t template.Template, out io.Writer) error {
	if !t.OpeningMode.Drawn() {
		return nil
	}
	a, err := stores.Draws.DrawAccount(ctx, t.ID)
	if errors.Is(err, draw.ErrNoDraw) {
		fmt.Fprintln(out, "draw: no card yet")
		return nil
	}
	if err != nil {
		return err
	}
	if a.Removed {
		fmt.Fprintf(out, "draw, %s: entered %d = won %d + waiting %d + struck %d + lapsed %d + left %d; its entries were removed after their retention\n",
			a.State, a.Entered, a.Won, a.Counts.Waiting(), a.Struck, a.Lapsed, a.Left)
		return nil
	}
	fmt.Fprintf(out, "draw, %s: entered %d = won %d + waiting %d + struck %d + lapsed %d + left %d; coupons of winners: %d\n",
		a.State, a.Entered, a.Rows.Won, a.Waiting, a.Rows.Struck, a.Rows.Lapsed, a.Left, a.Coupons)
	if off := a.Difference(); off != 0 {
		return difference(fmt.Sprintf("the account of the draw of template %d is off by %d entries", t.ID, off))
	}
	return nil
}
