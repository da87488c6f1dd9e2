package commands

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"dropbell/adapters/config"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/app"
)

// auditNotices prints the outcomes of the notices of one day. Without a day it covers three
// days: the days on which notices may be going out now in some time zone.
func auditNotices(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) > 1 {
		return config.Mistake{Err: errAuditUsage}
	}
	now := app.Clock()
	today := now.Truncate(24 * time.Hour)
	days := []time.Time{today.AddDate(0, 0, -1), today, today.AddDate(0, 0, 1)}
	if len(args) == 1 {
		day, err := time.Parse(time.DateOnly, args[0])
		if err != nil {
			return config.Mistake{Err: fmt.Errorf("%q is no day such as %s; %w", args[0], today.Format(time.DateOnly), errAuditUsage)}
		}
		days = []time.Time{day}
	}
	cfg, err := config.LoadOnly(getenv, append(databaseVariables(), "RETENTION_DAYS")...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	if kept := now.Add(-cfg.RetainFor); cfg.RetainFor > 0 && days[0].Before(kept) {
		return config.Mistake{Err: fmt.Errorf("notices of %s are not kept any more (RETENTION_DAYS); of that day there is the calendar alone", args[0])}
	}
	err = withDatabase(ctx, cfg, func(stores app.Stores) error {
		return auditDays(ctx, stores.Notices, days, out)
	})
	return found(err, "notices were")
}

func auditDays(ctx context.Context, notices couponsdb.Notices, days []time.Time, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "day\ttemplate\tplanned\tsent\tfailed\tnot needed\twaiting\tdifference\t")
	var off int64
	var wrong []string
	runs := 0
	for _, day := range days {
		list, err := notices.DayBalance(ctx, day)
		if err != nil {
			return err
		}
		for _, b := range list {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", day.Format(time.DateOnly), b.TemplateID, b.Kept.Planned, b.Sent, b.Failed,
				b.Kept.Dropped, b.Waiting, b.Difference())
			off += b.Difference()
		}
		differing, looked, err := notices.RunsOf(ctx, day)
		if err != nil {
			return err
		}
		runs += looked
		for _, b := range differing {
			wrong = append(wrong, fmt.Sprintf("run %d of template %d: of %d readers %d are lost and %d have another outcome than their batches say",
				b.Run, b.TemplateID, b.Readers, b.Lost, b.Wrong))
			off += b.Difference()
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, line := range wrong {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "%d finished runs were compared with their batches\n", runs)
	if off != 0 {
		return difference(fmt.Sprintf("the notices are off by %d", off))
	}
	_, err := fmt.Fprintln(out, "the notices balance")
	return err
}
