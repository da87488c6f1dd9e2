package commands

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"dropbell/app"
)

// auditCampaign prints a campaign's account as the rows add up.
func auditCampaign(ctx context.Context, stores app.Stores, id int64, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	b, err := stores.Campaigns.Balance(ctx, id)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "audience\tsent\tskipped\texpired\tdead\tin flight\ttwice\tdifference\t")
	c := b.Counted
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", c.Reserved, c.Sent, c.Skipped, c.Expired, c.Dead, c.InFlight, b.Twice, b.Difference())
	if err := w.Flush(); err != nil {
		return err
	}
	if d := b.Difference(); d != 0 {
		return difference(fmt.Sprintf("the account of campaign %d is off by %d", id, d))
	}
	_, err = fmt.Fprintf(out, "campaign %d balances\n", id)
	return err
}
