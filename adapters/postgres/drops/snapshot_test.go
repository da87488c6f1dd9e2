package drops_test

import (
	"context"
	"fmt"
	"testing"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/template"
)

// TestARushBesideAnOpenSnapshot: each group of claims updates the row of its drop. While a
// transaction keeps an old snapshot open, PostgreSQL keeps all versions of the row. Pages of
// the console find the newest version without visiting all versions. A list of open and
// sold-out drops visits them once.
func TestARushBesideAnOpenSnapshot(t *testing.T) {
	const groups = 4000
	w := newFixture(t)
	r := w.Rush(groups)
	templates, boards, cockpits := dropsdb.NewTemplates(r.DB), dropsdb.NewBoards(r.DB), dropsdb.NewCockpits(r.DB)
	r.Visits("the drop", 5, func(ctx context.Context) error {
		now, err := templates.Template(ctx, r.ID)
		if err == nil && now.Issued != groups {
			err = fmt.Errorf("%d coupons are issued", now.Issued)
		}
		return err
	})
	r.Visits("its board", 10, func(ctx context.Context) error {
		_, err := boards.Board(ctx, r.ID)
		return err
	})
	r.Visits("its cockpit", 10, func(ctx context.Context) error {
		_, err := cockpits.Cockpit(ctx, r.ID, nil)
		return err
	})
	r.Visits("open and sold-out drops", r.Pages+r.Pages/2, func(ctx context.Context) error {
		list, err := templates.Templates(ctx, template.Query{States: []template.State{template.Open, template.SoldOut}, Limit: 50})
		if err == nil && (len(list) != 1 || list[0].Issued != groups) {
			err = fmt.Errorf("%d drops are listed", len(list))
		}
		return err
	})
}
