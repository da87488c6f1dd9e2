package main

import (
	"dropbell/adapters/postgres"
	"dropbell/domain/redeemcode"
)

// codeGenerator works off jobs that generate redeem codes.
func (p *program) codeGenerator() *redeemcode.Generator {
	keys, _ := redeemcode.ParseKeys(p.cfg.CodeKeys) // config has checked them
	return &redeemcode.Generator{Store: postgres.NewCodes(p.db), Keys: keys}
}
