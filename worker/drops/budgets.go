package drops

import (
	"context"
	"fmt"

	"dropbell/domain/budget"
	"dropbell/domain/staff/alert"
)

// budgets announces budgets of which 80 % or all is used, and returns them as conditions.
func (d Deps) budgets(ctx context.Context) ([]alert.Condition, error) {
	reached, err := d.Budgets.Reached(ctx)
	list := make([]alert.Condition, len(reached))
	for i, b := range reached {
		list[i] = alert.Condition{Kind: alert.Budget, Object: fmt.Sprintf("%s:%d:%s", b.Scope, b.Subject, b.Currency), Shop: b.Shop, Name: b.Name, Count: b.Share() / 10, Path: "/budgets"}
		if b.Scope == budget.Drop {
			list[i].Template = b.Subject
		}
		if b.Level() == budget.UsedUp {
			list[i].Detail, list[i].Count = alert.DetailUsedUp, 100
		}
	}
	return list, err
}
