package program

import (
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/picture"
	"dropbell/adapters/wallet/googlewallet"
	"dropbell/adapters/wallet/pkpass"
	"dropbell/app"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/user"
	walletweb "dropbell/web/wallet"
)

// renewBefore is how long before the expiry of the certificate of passes a start logs that it must
// be renewed.
const renewBefore = 30 * 24 * time.Hour

// wireWallet makes the issuers of passes; it does nothing if no wallet is configured.
func (p *program) wireWallet() error {
	w := p.Config.Wallet
	if !w.Apple() && !w.Google() {
		return nil
	}
	texts, err := lookup.NewBooks(p.Stores.Messages)
	if err != nil {
		return err
	}
	address := strings.TrimSuffix(p.Config.PublicURL, "/")
	passes := &wallet.Service{Store: p.Stores.Wallet, Texts: texts, Signed: user.NewLinks(p.Config.LinkSecret), Address: address, Now: app.Clock}
	strips := &picture.Strips{Files: p.pictures.Files, Converter: picture.NewConverter(), Public: address}
	passes.Strip = strips.Of
	if w.Apple() {
		service := ""
		if strings.HasPrefix(address, "https://") { // devices call no other
			service = address + walletweb.Prefix
		}
		issuer, err := pkpass.New(pkpass.Config{TypeID: w.TypeID, TeamID: w.TeamID, Certificate: []byte(w.Certificate), Key: []byte(w.Key), WWDR: []byte(w.WWDR),
			Service: service, PushURL: w.PushURL})
		if err != nil {
			return config.Mistake{Err: err}
		}
		p.OnClose(issuer.Close)
		passes.Apple = issuer
		if ends := issuer.ExpiresAt(); app.Clock().Add(renewBefore).After(ends) {
			p.Log.Warn("the certificate of passes ends soon: renew PASS_CERTIFICATE, devices refuse passes of an expired one", "ends", ends)
		}
	}
	if w.Google() {
		issuer, err := googlewallet.New(googlewallet.Config{Account: []byte(w.GoogleAccount), Issuer: w.GoogleIssuer, URL: w.GoogleURL})
		if err != nil {
			return config.Mistake{Err: err}
		}
		p.OnClose(issuer.Close)
		passes.Google = issuer
	}
	p.passes = passes
	return nil
}

// mountWallet serves the calls of devices that have passes. Without Apple's Wallet every address
// below the prefix answers 404.
func (p *program) mountWallet(r chi.Router) {
	if !p.Config.Wallet.Apple() {
		return
	}
	r.Mount(walletweb.Prefix, walletweb.New(walletweb.Deps{Passes: p.passes, PassType: p.Config.Wallet.TypeID, Budget: walletweb.NewBudget(p.budgets),
		Now: app.Clock, Log: p.Log}))
}
