"""Operations under /v1, their routes, and the OpenAPI document."""
