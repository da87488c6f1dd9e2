// Package coupons holds the pages of coupons, redeem codes, lists of users who are given coupons,
// and the calendar of notices before coupons expire.
package coupons
