package drops

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestScanWishTakesOnlyThePlainForm(t *testing.T) {
	good := `{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`
	want := ReservationWish{TemplateID: "1", ShopNumber: "10", Reminders: []ReminderWish{{Channel: "app", Minutes: 10}}}
	for _, body := range []string{good,
		" { \"reminders\" : [ { \"minutes\" : 10 , \"channel\" : \"app\" } ] , \"shop_number\" : \"10\" , \"template_id\" : \"1\" } \n"} {
		if got, ok := scanWish([]byte(body)); !ok || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %+v %v", body, got, ok)
		}
	}
	for _, body := range []string{
		``, `{}`, `[]`, good + `x`, good + good, good[:len(good)-1],
		`{"template_id":1,"shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"0","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"9223372036854775808","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"1","template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"Template_ID":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"\u0031","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[]}`,
		`{"template_id":"1","shop_number":"10","reminders":null}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10,"x":1}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"","channel":"app","minutes":10}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10,"minutes":15}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":07}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10.0}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":1e1}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":-5}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":65}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app"}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10},]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}],"more":1}`,
	} {
		if got, ok := scanWish([]byte(body)); ok {
			t.Errorf("taken: %s as %+v", body, got)
		}
	}
}

// Every body that the scanner takes is read in the same way by the general reader.
func TestScanWishAgreesWithJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(rapid.StringMatching(`\{("template_id":"[0-9]{0,4}",?)("shop_number":"[0-9]{1,3}",?)"reminders":\[(\{"channel":"[a-z"]{2,7}","minutes":[0-9]{1,3}\},?){0,3}\][}\]]`).Draw(t, "body"))
		quick, ok := scanWish(body)
		if !ok {
			return
		}
		var slow ReservationWish
		if err := json.Unmarshal(body, &slow); err != nil {
			t.Fatalf("%s is not JSON: %v", body, err)
		}
		if d := cmp.Diff(slow, quick); d != "" {
			t.Fatalf("%s: %s", body, d)
		}
	})
}

// The hand-written answer equals the answer of the general way to the byte.
func TestAppendReservationAgreesWithJSON(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,20}`), rapid.String(), rapid.StringMatching(`[<>&"\\\x{2028}\x{4e00}-\x{4e10}]{0,5}`))
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(0, 4_000_000_000_000_000).Draw(t, "at")).UTC()
	})
	rapid.Check(t, func(t *rapid.T) {
		r := Reservation{TemplateID: "1", ShopNumber: "10", TemplateName: text.Draw(t, "name"), OpensAt: at.Draw(t, "opens"), Slots: "4098", Reminders: []ReminderState{}}
		for range rapid.IntRange(0, 3).Draw(t, "reminders") {
			r.Reminders = append(r.Reminders, ReminderState{"app", rapid.IntRange(5, 60).Draw(t, "minutes"), at.Draw(t, "due"), "waiting", text.Draw(t, "reason")})
		}
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendReservation(nil, &r)); got != string(want) {
			t.Fatalf("%s\nis not\n%s", got, want)
		}
		if strings.Count(string(want), "due_at") != len(r.Reminders) {
			t.Fatal("nothing was compared")
		}
	})
}

// The hand-written answer equals the answer of the general way to the byte.
