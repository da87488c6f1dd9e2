package coupons_test

import (
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// TestNoticesAreInTheInbox: a user who was reached in the app reads the same
// notice in the list and in the stream.
func TestNoticesAreInTheInbox(t *testing.T) {
	b := newNoticeFixture(t, 1)
	b.app.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID == 3 {
			return delivery.Result{Status: delivery.Permanent, Detail: "gone"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	b.own(b.drop, 1, 2, 3, 4)
	b.Exec(`update users set locale = 'zh-CN' where id = 2`)
	b.Exec(`update coupons set expires_at = expires_at + interval '1 second' where user_id = 2`)
	b.Exec(`update users set opt_outs = 1 where id = 4`)
	b.Exec(`update templates set claim_url = 'https://shop.example/use' where id = $1`, b.drop.ID)
	b.planned(4)
	box := func(id user.ID) inbox.Page {
		t.Helper()
		list, err := b.Inbox.Page(t.Context(), id, time.Time{}, 10)
		b.Must(err)
		return list
	}
	if got := box(1); len(got.Items) != 0 {
		t.Fatalf("told before it is due: %+v", got)
	}
	b.comeDue()
	b.until("cut", func() bool { return b.Number(`select count(*) from batches where kind = 'notice'`) == 2 })
	if got := box(1); len(got.Items) != 0 {
		t.Fatalf("told before it is sent: %+v", got)
	}
	b.deliver()
	for id, title := range map[user.ID]string{1: "Your coupon expires tomorrow: Half price", 2: "优惠券明天到期：Half price"} {
		got := box(id)
		if len(got.Items) != 1 || got.Unread != 1 {
			t.Fatalf("user %d: %+v", id, got)
		}
		it := got.Items[0]
		var ends time.Time
		b.Must(b.SQL.QueryRow(t.Context(), `select expires_at from coupons where user_id = $1`, id).Scan(&ends))
		if it.Kind != delivery.KindNotice || it.Title != title || it.Text == "" || !it.ExpiresAt.Equal(ends) || it.TemplateID != b.drop.ID ||
			it.Name != "Half price" || it.ClaimURL != "https://shop.example/use" || it.Slot != 0 || it.DueAt.IsZero() || it.At.Before(it.DueAt) {
			t.Errorf("user %d: %+v", id, it)
		}
	}
	for _, id := range []user.ID{3, 4, 9} {
		if got := box(id); len(got.Items) != 0 {
			t.Errorf("user %d, who was not reached, reads %+v", id, got)
		}
	}
	pushedLikeListed(t, b)
	_, err := b.Inbox.MarkRead(t.Context(), 1, pgtest.Clock().Add(time.Minute))
	b.Must(err)
	if got := box(1); got.Unread != 0 || !got.Items[0].Read {
		t.Errorf("read: %+v", got)
	}
}

func pushedLikeListed(t *testing.T, b *noticeFixture) {
	t.Helper()
	everybody := func(from, to user.ID, reached inbox.Users) (list []user.ID) {
		for id := from; id <= to; id++ {
			if reached.Contains(id) {
				list = append(list, id)
			}
		}
		return list
	}
	app, hook := b.Number(`select id from batches where channel = 0`), b.Number(`select id from batches where channel = 4`)
	pushed, reached, err := b.Inbox.Arrival(t.Context(), delivery.KindNotice, app, everybody)
	b.Must(err)
	to := pushed.Users
	if !reached || len(to) != 2 {
		t.Errorf("pushed to %v", to)
	}
	for _, id := range to {
		it := pushed.Message(id)
		list, err := b.Inbox.Page(t.Context(), id, time.Time{}, 10)
		b.Must(err)
		if len(list.Items) != 1 || list.Items[0] != it {
			t.Errorf("user %d: pushed %+v, listed %+v", id, it, list.Items)
		}
	}
	nobody := func(user.ID, user.ID, inbox.Users) []user.ID { return nil }
	if _, reached, err := b.Inbox.Arrival(t.Context(), delivery.KindNotice, app, nobody); err != nil || reached {
		t.Errorf("nobody is connected: %v, %v", reached, err)
	}
	if _, _, err := b.Inbox.Arrival(t.Context(), delivery.KindNotice, hook, everybody); err == nil {
		t.Error("another channel's batch was pushed")
	}
}
