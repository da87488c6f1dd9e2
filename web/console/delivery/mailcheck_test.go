package delivery_test

import (
	"context"
	"fmt"
	"testing"

	"dropbell/domain/mailcheck"
	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
)

// noRecords is a resolver for names without records.
type noRecords struct{}

func (noRecords) TXT(context.Context, string) ([]string, error) { return nil, mailcheck.ErrNone }
func (noRecords) Organization(domain string) string             { return domain }

// TestTheFirstSendersAreChecked: the page requests the senders that its viewer may see, checks ten
// of them and shows the number of all.
func TestTheFirstSendersAreChecked(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) {
		d.Delivery.Mail.Resolver = noRecords{}
		d.Delivery.Mail.Senders = func(_ context.Context, by staff.Actor) (list []mailcheck.Sender, _ error) {
			for shop := int64(11); shop <= 22; shop++ {
				if by.Can(staff.View, shop) {
					domain := fmt.Sprintf("shop%d.example", shop)
					list = append(list, mailcheck.Sender{From: domain, ReturnPath: domain, Server: "mail." + domain})
				}
			}
			return list, nil
		}
	})
	b := g.As(staff.Viewer)
	b.Get("/channels/mail").Is(200).Has("shop11.example", "shop20.example", "10 of 12 senders are shown.").HasNot("shop21.example")
	b.Header.Set("Accept-Language", "zh-CN")
	b.Get("/channels/mail").Is(200).Has("共 12 个发件来源，此处显示前 10 个。")
	g.As(staff.Viewer, 21, 22).Get("/channels/mail").Is(200).Has("shop21.example", "shop22.example").HasNot("shop11.example", "senders are shown")
}
