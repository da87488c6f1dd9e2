package stories

import (
	"bytes"
	"context"
	"image/png"
	"io"
	"time"

	"github.com/a-h/templ"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/views/ui"
)

// options are the options of a ceremony; the button is not pressed here.
const options = `{"challenge":"AA"}`

// secondFactors are the pages around second factors and confirmations.
func secondFactors() []Story {
	used := Now().Add(-26 * time.Hour)
	two := staff.Security{CodesLeft: 9, Factors: []staff.Factor{
		{ID: 1, Kind: staff.TOTP, Name: "Work phone", CreatedAt: Now().Add(-90 * 24 * time.Hour), UsedAt: &used},
		{ID: 2, Kind: staff.Passkey, Name: "Security key on the key ring, the one with the blue lanyard", CreatedAt: Now().Add(-time.Hour)}}}
	fresh := []string{"k3fp-7xqa-mmza-2bnr", "wy5t-ahq4-c2oe-j7lu", "p6vd-3iix-gk2s-rr4q", "zb7n-5e2m-u3ya-fk6o", "t4xc-q2jw-n5hd-ys3p",
		"e2ga-mo7v-l4kr-x6bi", "h5nu-z3ft-2wqc-dp7j", "j6sk-y2xe-b4om-v3la", "r7pi-c5zh-t2gn-qw4f", "a3qd-x4ru-o6ye-mk2s"}
	app := accesspages.NewApp{Name: "Authenticator app", Secret: staff.OneTimeSecret{Secret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", QR: drawnQR()}}
	wrong := app
	wrong.Errors = []fault.Field{{Name: "passcode", Key: "rule.one_time_wrong", Message: "is not what the app shows now; check the clock of the device"}}
	confirm := accesspages.Confirm{Email: "lin@example.com", Return: "/keys/new", Password: true}
	return []Story{
		{Name: "second/code", Page: accesspages.SecondStep{Email: "lin@example.com", Passkey: options}.Page(), Outside: true},
		{Name: "second/recovery", Page: accesspages.SecondStep{Email: "lin@example.com", Recovery: true, Errors: []fault.Field{{Name: "passcode", Key: "rule.required", Message: "is required"}}}.Page(), Outside: true},
		{Name: "second/refused", Page: accesspages.SecondStep{Email: "lin@example.com", Error: "This code or passkey is wrong or was already used."}.Page(), Outside: true},
		{Name: "security/none", Page: accesspages.Security{Passkeys: true}.Page()},
		{Name: "security/some", Page: accesspages.Security{Security: two, Passkeys: true}.Page(), Flashes: []ui.Flash{{Kind: ui.Good, Text: "The name has been saved."}}},
		{Name: "security/fresh", Page: accesspages.Security{Security: two, Fresh: fresh, Return: "/channels"}.Page()},
		{Name: "security/must", Page: enrolling(accesspages.Security{Passkeys: true, Return: "/channels"}.Page())},
		{Name: "security-app/new", Page: app.Page()},
		{Name: "security-app/wrong", Page: wrong.Page()},
		{Name: "security-app/must", Page: enrolling(app.Page())},
		{Name: "security-passkey/new", Page: accesspages.NewPasskey{Options: options, Name: "Passkey"}.Page()},
		{Name: "security-passkey/refused", Page: accesspages.NewPasskey{Options: options, Name: "Passkey", Error: "The passkey could not be added. Start again."}.Page()},
		{Name: "confirm/password", Page: with(confirm, func(p *accesspages.Confirm) { p.ByPassword = true }).Page()},
		{Name: "confirm/code", Page: with(confirm, func(p *accesspages.Confirm) { p.Codes, p.Passkey = true, options }).Page()},
		{Name: "confirm/form", Page: with(confirm, func(p *accesspages.Confirm) {
			p.ByPassword, p.To, p.Carried, p.Error = true, "/keys", [][2]string{{"name", "till"}}, "This is not your password."
		}).Page()},
		{Name: "confirm/single-sign-on", Page: with(confirm, func(p *accesspages.Confirm) { p.Password, p.SingleSignOn, p.To = false, true, "/staff" }).Page()},
	}
}

func with(p accesspages.Confirm, change func(*accesspages.Confirm)) accesspages.Confirm {
	change(&p)
	return p
}

// enrolling renders the page for a member who must first add a second factor.
func enrolling(page templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		f := *ui.From(ctx)
		f.MustEnrol = true
		return page.Render(ui.With(ctx, &f), w)
	})
}

// drawnQR is a PNG of a made-up QR code.
func drawnQR() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, pretendQR()) // into memory, which cannot fail
	return b.Bytes()
}
