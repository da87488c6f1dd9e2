package main

import (
	"context"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	"dropbell/domain/event"
	"dropbell/domain/redeemcode"
)

// wireCodes makes what staff do with redeem codes.
func (p *program) wireCodes() error {
	keys, err := redeemcode.ParseKeys(p.cfg.CodeKeys)
	if err != nil {
		return err
	}
	p.codes = &redeemcode.Service{Store: postgres.NewCodes(p.db), Keys: keys, Now: clock}
	p.codeLookup, err = lookup.NewCodes(postgres.NewCodes(p.db))
	return err
}

// listenCodes makes this process see at once what happened to a batch.
func (p *program) listenCodes() {
	p.bus.Listen("code-cache", event.CodesChanged, decoded(func(_ context.Context, e event.Codes) error {
		p.codeLookup.Forget(e.BatchID)
		return nil
	}))
}
