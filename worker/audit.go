package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"dropbell/adapters/postgres"
	"dropbell/domain/delivery"
)

// audit prints a template's balance sheet as the rows add up, and fails if a
// line does not balance or differs from what was kept.
func audit(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	ofCampaign := len(args) == 2 && args[0] == "campaign"
	if len(args) != 1 && !ofCampaign {
		return errAuditUsage
	}
	id, err := strconv.ParseInt(args[len(args)-1], 10, 64)
	if err != nil || id <= 0 {
		return fmt.Errorf("%q is not an id", args[len(args)-1])
	}
	if ofCampaign {
		return auditCampaign(ctx, id, getenv, out)
	}
	db, err := postgres.Open(ctx, getenv("DATABASE_URL"), postgres.Options{AppName: "dropbell-audit"})
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := postgres.NewTemplates(db).Template(ctx, id); err != nil {
		return err
	}
	lines, err := postgres.NewBoards(db).Balance(ctx, id)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "due\tchannel\treserved\tsent\tskipped\texpired\tdead\tin flight\tdifference\t")
	var off int64
	for _, l := range lines {
		if l.Kept.Reserved == 0 && l.Counted == (delivery.Counts{}) {
			continue
		}
		c := l.Counted
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", l.Slot.DueAt.Format("2006-01-02 15:04:05"), l.Channel,
			l.Kept.Reserved, c.Sent, c.Skipped, c.Expired, c.Dead, c.InFlight, l.Difference())
		off += l.Difference()
	}
	if err := w.Flush(); err != nil {
		return err
	}
	stock, err := postgres.NewLedgers(db).Ledger(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "stock: %d in all = %d on the shelf + %d being written + %d issued; %d counted per user, %d users over the limit\n",
		stock.Total, stock.Shelf, stock.Writing, stock.Issued, stock.PerUser, stock.OverLimit)
	if n := stock.Difference(); n != 0 {
		return fmt.Errorf("the stock ledger of template %d is off by %d", id, n)
	}
	if off != 0 {
		return fmt.Errorf("the balance sheet of template %d is off by %d", id, off)
	}
	fmt.Fprintf(out, "template %d balances\n", id)
	return nil
}
