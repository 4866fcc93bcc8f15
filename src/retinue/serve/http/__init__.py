"""The door of HTTP: operations as rows of a table, and the ASGI app and document made of them.

`operations` says what a row is; `turns`, `conversations` and `about` hold the rows and what they
do; `app` puts them together; `server` runs the app. Nothing above a row knows the gateway.
"""
