package console_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/consoletest"
)

// Lists and dialogs show the names of customers beside their numbers. A contact inside a name is masked
// for staff who may not see contacts. A customer without a name is a number.
func TestNamesBesideNumbers(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, name, email) values (1001, 'Lin Mei', 'lin@example.com'), (1002, 'bo@example.com', 'bo@example.com'), (1003, '', 'x@example.com')`)
	d := g.Published(10, 4*time.Hour)
	coupon := map[int]int64{}
	for _, id := range []int{1001, 1002, 1003} {
		g.Book(d, user.ID(id), delivery.Email, 60)
	}
	g.Fire(d, 12, consoletest.Takes)
	for _, id := range []int{1001, 1002, 1003} {
		coupon[id] = g.Gives(d, int64(id))
	}
	admin, viewer := g.As(staff.Admin), g.As(staff.Viewer, 10)
	for _, path := range []string{fmt.Sprintf("/coupons?by=template&q=%d", d.ID), fmt.Sprintf("/deliveries/%d", g.Number(`select min(id) from batches`))} {
		admin.Get(path).Is(200).Has("Lin Mei", "1001", "bo@example.com", "Customer 1003")
		viewer.Get(path).Is(200).Has("Lin Mei", "b…@e…").HasNot("bo@example.com")
	}
	page := fmt.Sprintf("/coupons/%d", coupon[1001])
	admin.Get(page).Is(200).Has("Lin Mei", "1001")
	admin.Get(page + "/revoke").Is(200).Has("Lin Mei (1001)")
	admin.Get(fmt.Sprintf("/coupons/%d/revoke", coupon[1003])).Is(200).Has("1003")
}
